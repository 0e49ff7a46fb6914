"""Cases with ranked differential diagnoses."""
