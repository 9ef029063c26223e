return {
  name = "alpha",
  fields = {
    { config = { type = "record", fields = { { value = { type = "string", default = "hello" } } } } },
  },
}
