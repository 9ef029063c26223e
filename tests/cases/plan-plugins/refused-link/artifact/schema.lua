return {
  name = "myheader",
  fields = {
    { config = { type = "record", fields = { { value = { type = "string", default = "hello" } } } } },
  },
}
