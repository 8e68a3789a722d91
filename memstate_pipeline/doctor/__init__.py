"""The examinations of `memstate doctor`."""
