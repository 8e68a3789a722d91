"""What commands share: options, output, errors, progress, readers."""
