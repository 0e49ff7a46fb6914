"""The day on which tests release banks."""

import datetime as dt

TODAY = dt.date(2026, 11, 20)
