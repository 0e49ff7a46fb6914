"""Completion → answer: parsers and outcomes."""

from medassay.answer.number import extract_number
from medassay.answer.option import extract_option
from medassay.answer.parse import read_answer

__all__ = ["extract_number", "extract_option", "read_answer"]
