"""How memory fades: salience decays with time, and what nobody needs leaves the active set, undoably."""
