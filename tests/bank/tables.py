"""Banks and tables that tests load."""

import openpyxl

from medassay.bank.delimited import USUAL
from medassay.bank.table import bank_of_table, read_table


def load_table(path, columns, *, form=USUAL, **more):
    return bank_of_table(read_table(path, columns, form), **more)


def sheet(path, *rows, merged="", formats=None):
    """Write an XLSX file as a spreadsheet program would; formulas have no result.

    `formats` are cells with the format of their number: `{"B2": "0%"}`.
    """
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for cell, number_format in (formats or {}).items():
        book.active[cell].number_format = number_format
    if merged:
        book.active.merge_cells(merged)
    book.save(path)
    return path
