return { send = function(conf) ngx.log(ngx.NOTICE, conf.value) end }
