use std::{
    io::{Read, Write},
    net::TcpListener,
    time::Duration,
};

use super::{Args, Url, run};
use crate::{exit::Exit, of_error};

#[test]
fn urls_are_read_with_and_without_port_and_path() {
    let url = |host: &str, port, path: &str| Url { host: host.into(), port, path: path.into() };
    assert_eq!(Url::parse("http://a.b:8080/metrics"), Ok(url("a.b", 8080, "/metrics")));
    assert_eq!(Url::parse("http://a"), Ok(url("a", 80, "/")));
    assert_eq!(Url::parse("http://[::1]:81/x/y"), Ok(url("[::1]", 81, "/x/y")));
    assert_eq!(Url::parse("http://[::1]/x"), Ok(url("[::1]", 80, "/x")));
    for bad in ["https://a", "a:80", "http://", "http://a:b/", "http://a/ x", "http://a/\r\nx"] {
        assert!(Url::parse(bad).is_err(), "{bad:?}");
    }
}

/// A server that gives these answers, one per connection, and its address.
fn server(answers: Vec<&'static str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/metrics", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 512];
            let _ = stream.read(&mut request).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    url
}

fn args(url: &str, wait: u64) -> Args {
    Args { url: Url::parse(url).unwrap(), contains: vec!["weir_leader 1".into()], wait: Duration::from_secs(wait) }
}

const STANDBY: &str = "HTTP/1.1 200 OK\r\n\r\nweir_leader 0\n";
const LEADER: &str = "HTTP/1.1 200 OK\r\n\r\nweir_leader 1\n";

#[test]
fn it_asks_until_the_text_is_there() {
    assert_eq!(run(&args(&server(vec![STANDBY, LEADER]), 20)).unwrap(), Exit::Done);
}

#[test]
fn what_is_wrong_is_said_when_the_time_is_over() {
    for (answer, words) in [(STANDBY, "has no \"weir_leader 1\""), ("HTTP/1.1 503 No\r\n\r\n", "503"), ("hello", "no HTTP answer")] {
        let error = run(&args(&server(vec![answer]), 0)).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(of_error(&error), Exit::Unavailable);
    }
}
