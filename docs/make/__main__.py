"""Makes the pictures again: `python -m docs.make`. Screenshots take minutes: `python -m docs.make.screenshots`."""

from docs.make import floors, memory, night

for picture in (floors, memory, night):
    picture.FILE.write_text(picture.picture())
