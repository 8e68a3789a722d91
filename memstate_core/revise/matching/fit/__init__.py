"""The fit: a Fellegi-Sunter model by expectation and maximisation."""
