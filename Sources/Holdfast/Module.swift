// Module Holdfast
