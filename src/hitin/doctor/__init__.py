"""The doctor: is this taxonomy, with these documents, fit to train on?"""

from hitin.doctor.check_up import CheckUp as CheckUp
from hitin.doctor.check_up import check as check
