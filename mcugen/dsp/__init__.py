"""Signals: filters, windows and features of samples that arrive one by one."""
