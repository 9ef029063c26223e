//! The image rule: is this a Kong image of a version we serve (facts/kong-operator.md 1.4.5, without its faults)?

/// First version of Kong that is served.
pub const MIN_MAJOR: u64 = 3;

/// What an image reference says about its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageVersion {
    /// The tag reads as a version of at least 3.0.0.
    Served,
    /// The tag reads as a version below 3.0.0.
    TooOld(String),
    /// No tag, a digest only, or a tag that reads as no version: accepted with a finding.
    Unknown,
    /// No image reference at all.
    Malformed(&'static str),
}

/// Reads an image reference: `[registry[:port]/]path[:tag][@digest]`.
#[must_use]
pub fn version(image: &str) -> ImageVersion {
    if image.is_empty() || image.len() > 1024 || image.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return ImageVersion::Malformed("an image reference is not empty, has at most 1024 characters and no space");
    }
    let (reference, digest) = match image.split_once('@') {
        Some((reference, digest)) => (reference, Some(digest)),
        None => (image, None),
    };
    if digest.is_some_and(|d| !is_digest(d)) {
        return ImageVersion::Malformed("what follows `@` is not `ALGORITHM:HEX` with at least 32 digits");
    }
    let last = reference.rsplit('/').next().unwrap_or(reference);
    // A colon before the last slash is a registry's port, not a tag.
    let (path, tag) = match last.split_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (last, None),
    };
    if path.is_empty() || reference.starts_with('/') {
        return ImageVersion::Malformed("the repository name is empty");
    }
    match tag {
        None => ImageVersion::Unknown,
        Some(tag) if !is_tag(tag) => {
            ImageVersion::Malformed("a tag has 1 to 128 letters, digits, `_`, `.` or `-` and starts with none of `.` and `-`")
        }
        Some(tag) => tag_version(tag),
    }
}

fn is_digest(digest: &str) -> bool {
    digest.split_once(':').is_some_and(|(algorithm, hex)| {
        !algorithm.is_empty()
            && algorithm.chars().all(|c| c.is_ascii_alphanumeric() || "+._-".contains(c))
            && hex.len() >= 32
            && hex.chars().all(|c| c.is_ascii_hexdigit())
    })
}

fn is_tag(tag: &str) -> bool {
    !tag.is_empty()
        && tag.len() <= 128
        && tag.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
        && !tag.starts_with(['.', '-'])
}

/// `v`, then two to four numbers, then anything after `-` or `_`. One number alone may be a date or a build: unknown.
fn tag_version(tag: &str) -> ImageVersion {
    let bare = tag.strip_prefix('v').unwrap_or(tag);
    let core = bare.split(['-', '_']).next().unwrap_or(bare);
    let segments: Vec<&str> = core.split('.').collect();
    let numeric = segments.iter().all(|s| !s.is_empty() && s.len() <= 6 && s.chars().all(|c| c.is_ascii_digit()));
    let major = segments.first().and_then(|s| s.parse::<u64>().ok());
    match (numeric, segments.len(), major) {
        (true, 2..=4, Some(major)) if major < MIN_MAJOR => ImageVersion::TooOld(core.to_owned()),
        (true, 2..=4, Some(_)) => ImageVersion::Served,
        (true, 1, Some(major)) if (1..MIN_MAJOR).contains(&major) => ImageVersion::TooOld(core.to_owned()),
        (true, 1, Some(major)) if (MIN_MAJOR..100).contains(&major) => ImageVersion::Served,
        _ => ImageVersion::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_where_they_stand() {
        let digest = format!("@sha256:{}", "ab".repeat(32));
        let cases = [
            ("kong:3.9", ImageVersion::Served),
            ("kong/kong-gateway:3.15.0.1", ImageVersion::Served),
            ("kong:v3.4.2-debian", ImageVersion::Served),
            ("kong:3", ImageVersion::Served),
            ("kong:2.8.5", ImageVersion::TooOld("2.8.5".into())),
            ("registry:5000/kong:2.8", ImageVersion::TooOld("2.8".into())),
            ("kong:2", ImageVersion::TooOld("2".into())),
            ("registry:5000/kong", ImageVersion::Unknown),
            ("kong", ImageVersion::Unknown),
            ("kong:latest", ImageVersion::Unknown),
            ("mycorp/kong:prod", ImageVersion::Unknown),
            ("kong:20260101", ImageVersion::Unknown),
        ];
        for (image, expected) in cases {
            assert_eq!(version(image), expected, "{image}");
        }
        assert_eq!(version(&format!("kong{digest}")), ImageVersion::Unknown);
        assert_eq!(version(&format!("kong:2.1{digest}")), ImageVersion::TooOld("2.1".into()));
        for bad in ["", "kong: 3.9", "kong@sha256:zz", "kong:", "/kong:3.9", "a/:3.9"] {
            assert!(matches!(version(bad), ImageVersion::Malformed(_)), "{bad:?}");
        }
    }
}
