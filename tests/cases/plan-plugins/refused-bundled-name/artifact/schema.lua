return {
  name = "cors",
  fields = {
    { config = { type = "record", fields = { { value = { type = "string", default = "hello" } } } } },
  },
}
