"""Question banks: load, validate, version, compare, describe."""

from medassay.bank.folder import bank_records, load_bank, write_bank
from medassay.bank.release import diff_banks, release
from medassay.bank.serialize import item_record
from medassay.bank.stats import bank_stats

__all__ = [
    "bank_records",
    "bank_stats",
    "diff_banks",
    "item_record",
    "load_bank",
    "release",
    "write_bank",
]
