"""A trained network as a folder that needs no torch, in the order of the work: the `graph` (with its `recurrent` part),
`int8`, what other programs need to know of the `labels`, the `folder`, the `model` that runs it, and `exporting`, which
puts them together."""
