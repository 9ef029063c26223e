//! Patterns of paths: `*` and `?` within a name, `**` for any number of folders. No regular expressions: a guest is small, and a
//! pattern must not cost more than its length times that of the path.

/// Longest pattern, bytes.
pub(crate) const MAX_PATTERN: usize = 128;

/// Whether `pattern` is one: a relative path whose parts are names with `*` and `?`, or `**` alone.
pub(crate) fn is_pattern(pattern: &str) -> bool {
    // These mean something in other tools; who writes them would wonder why nothing matches.
    let plain = !pattern.contains(['[', ']', '{', '}', '\\', '!']) && !pattern.chars().any(char::is_control);
    let part = |part: &str| !part.is_empty() && part != "." && part != ".." && (part == "**" || !part.contains("**"));
    plain && pattern.len() <= MAX_PATTERN && pattern.split('/').all(part)
}

/// Whether a path matches a pattern. Allocates nothing: every file of an artifact is compared with every pattern.
pub(crate) fn matches(pattern: &str, path: &str) -> bool {
    greedy(pattern.split('/'), path.split('/'), |part| *part == "**", |part, name| name_matches(part, name))
}

fn name_matches(pattern: &str, name: &str) -> bool {
    // Most names differ from most patterns in what is before the first star or after the last one.
    let (head, tail) = (pattern.split(['*', '?']).next().unwrap_or(""), pattern.rsplit(['*', '?']).next().unwrap_or(""));
    name.starts_with(head) && name.ends_with(tail) && greedy(pattern.chars(), name.chars(), |c| *c == '*', |c, with| *c == '?' || c == with)
}

/// Matches elements against a pattern in which some elements stand for any number of them. On a mismatch only the last of these
/// takes one more: an earlier one could not do better, so the work is at most the product of the lengths.
fn greedy<I, T>(pattern: I, text: I, is_star: impl Fn(&T) -> bool, same: impl Fn(&T, &T) -> bool) -> bool
where
    I: Iterator<Item = T> + Clone,
{
    let (mut pattern, mut text) = (pattern, text);
    // What follows the last star, and the text from which that was tried.
    let mut again: Option<(I, I)> = None;
    loop {
        let (mut rest_pattern, mut rest_text) = (pattern.clone(), text.clone());
        match (rest_pattern.next(), rest_text.next()) {
            (Some(star), _) if is_star(&star) => {
                again = Some((rest_pattern.clone(), text.clone()));
                pattern = rest_pattern;
            }
            (Some(part), Some(element)) if same(&part, &element) => {
                pattern = rest_pattern;
                text = rest_text;
            }
            (None, None) => return true,
            _ => {
                let Some((after, from)) = &mut again else { return false };
                if from.next().is_none() {
                    return false;
                }
                pattern = after.clone();
                text = from.clone();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match() {
        for (pattern, path) in [
            ("**/*.lua", "a.lua"),
            ("**/*.lua", "a/b/c.lua"),
            ("*.lua", "a.lua"),
            ("a/**", "a/b/c"),
            ("**/spec/**", "x/spec/y/z.lua"),
            ("**/spec/**", "spec/z.lua"),
            ("a/**/b/**/c", "a/b/b/x/c"),
            ("a?c", "abc"),
            ("a?c", "a\u{e9}c"),
            ("**/README*", "x/README"),
            ("*a*b*", "xxaxxbxx"),
            ("**", "a/b"),
        ] {
            assert!(matches(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn others_do_not() {
        for (pattern, path) in [
            ("*.lua", "a/b.lua"),
            ("**/*.lua", "a.luac"),
            ("a?c", "ac"),
            ("a?c", "a/c"),
            ("a/*", "a/b/c"),
            ("a/**/b", "a/x/c"),
            ("*a*b*", "xxbxxaxx"),
            ("", "a"),
        ] {
            assert!(!matches(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn only_plain_patterns_are_patterns() {
        for pattern in ["**/*.lua", "a", "*", "**", "migrations/*.lua", "a?b/**"] {
            assert!(is_pattern(pattern), "{pattern}");
        }
        let long = "a".repeat(MAX_PATTERN + 1);
        for pattern in ["", "/a", "a/", "a//b", "./a", "../a", "a**", "**a/b", "*.{a,b}", "[ab]", "!a", "a\\b", "a\nb", long.as_str()] {
            assert!(!is_pattern(pattern), "{pattern}");
        }
    }

    #[test]
    fn hostile_patterns_end() {
        let pattern = format!("**/{}b", "*a".repeat(60));
        assert!(!matches(&pattern, &"a".repeat(512)));
        let pattern = format!("{}b", "**/a/".repeat(24));
        assert!(!matches(&pattern, &"a/".repeat(256)));
    }
}
