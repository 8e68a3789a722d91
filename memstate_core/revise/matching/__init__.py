"""Entity resolution: blocking, comparison, a Fellegi-Sunter model fitted by EM, clustering."""
