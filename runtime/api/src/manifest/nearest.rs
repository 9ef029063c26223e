//! The name somebody probably meant.

/// Edits that are still taken for a slip.
const SLIP: usize = 2;

/// The closest known name, if it is at most two edits away or differs only in case.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let typed = name.to_lowercase();
    known
        .map(|candidate| (distance(&typed, &candidate.to_lowercase()), candidate))
        // Two edits turn any word of two letters into any other.
        .filter(|(edits, candidate)| *edits <= SLIP && *edits < candidate.chars().count().min(name.chars().count()))
        .min()
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance; long before it could cost anything, lengths that differ too much end it.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let length = one.chars().count();
    if length.abs_diff(other.len()) > SLIP {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, left) in one.chars().enumerate() {
        let mut diagonal = line;
        let mut before = line + 1;
        let mut next = vec![before];
        for (right, above) in other.iter().zip(row.iter().skip(1)) {
            let substituted = diagonal + usize::from(left != *right);
            before = substituted.min(above + 1).min(before + 1);
            diagonal = *above;
            next.push(before);
        }
        row = next;
    }
    row.last().copied().unwrap_or(length)
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("replica", "replicas"), 1);
        assert_eq!(distance("", "ab"), 2);
        assert_eq!(distance("same", "same"), 0);
    }

    #[test]
    fn only_slips_are_suggested() {
        let known = ["replicas", "image", "a"];
        assert_eq!(nearest("Replcas", known.into_iter()), Some("replicas"));
        assert_eq!(nearest("iamge", known.into_iter()), Some("image"));
        assert_eq!(nearest("port", known.into_iter()), None);
        assert_eq!(nearest("b", known.into_iter()), None);
    }
}
