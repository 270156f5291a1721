"""The shape of an observation and of its answer: cameras in the order of the wire, rows and columns of a chunk."""

CAMERAS = ("top", "left", "right")
ROWS, COLUMNS = 30, 14
