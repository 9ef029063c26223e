package = "kong-plugin-geo"
