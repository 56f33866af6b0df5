"""The report of an evaluation: a page to look at, and the same numbers as JSON and CSV."""

from hitin.report.collecting import ReportBuilder as ReportBuilder
from hitin.report.contents import About as About
from hitin.report.contents import BaselineScores as BaselineScores
from hitin.report.contents import Report as Report
from hitin.report.contents import report_files as report_files
from hitin.report.examples import ReportDocument as ReportDocument
