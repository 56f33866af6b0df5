"""The doctor: is this taxonomy, with these documents, fit to train on?"""

from hitin.doctor.check_up import check as check
from hitin.doctor.facts import CheckUp as CheckUp
