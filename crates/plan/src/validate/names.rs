//! Checks of names that become file names.

/// Longest name of a plan, in characters.
const NAME_CHARACTERS: usize = 64;
/// The rule of [`is_file_name`] in words.
pub(super) const NAME_RULE: &str = "1 to 64 letters, digits, `.`, `_` or `-`";

/// Whether a text can be a file name.
pub(crate) fn is_file_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !name.is_empty()
        && name.chars().count() <= NAME_CHARACTERS
        && name.chars().all(allowed)
        && !name.starts_with('.')
}
