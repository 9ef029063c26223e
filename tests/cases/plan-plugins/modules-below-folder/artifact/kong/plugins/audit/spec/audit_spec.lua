describe("audit", function() end)
