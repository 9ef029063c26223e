return { "000_base_audit" }
