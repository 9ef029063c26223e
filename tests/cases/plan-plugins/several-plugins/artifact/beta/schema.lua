return {
  name = "beta",
  fields = {
    { config = { type = "record", fields = { { value = { type = "string", default = "hello" } } } } },
  },
}
