return {
  name = "my_header",
  fields = {
    { config = { type = "record", fields = { { value = { type = "string", default = "hello" } } } } },
  },
}
