//! Parts of a page in Markdown, and fields of structs with their documentation.

/// First lines of a page.
pub fn begin(title: &str, text: &str) -> String {
    format!(
        "<!-- prose: written by `make reference` from the program; do not edit -->\n# {title}\n\n{text}\n"
    )
}

/// A table; columns without any text are left out.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let columns: Vec<_> = (0..head.len()).filter(|&at| rows.iter().any(|row| !row[at].is_empty())).collect();
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(columns.iter().map(|&at| head[at].to_owned()).collect());
    text.push_str(&line(columns.iter().map(|_| "---".to_owned()).collect()));
    for row in rows {
        text.push_str(&line(columns.iter().map(|&at| row[at].replace('|', "\\|")).collect()));
    }
    text
}

/// The text as code, if there is any.
pub fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

/// A field of a struct.
pub struct Field {
    pub name: String,
    pub kind: String,
    pub attributes: String,
    pub meaning: String,
}

/// Variants of the enum `name` in a source file without data, with their doc comments; names are in kebab case.
pub fn variants(source: &str, name: &str) -> Vec<(String, String)> {
    let head = format!("pub enum {name} {{\n");
    let begin = source.find(&head).unwrap_or_else(|| panic!("no enum {name}")) + head.len();
    let mut variants = Vec::new();
    let mut meaning = Vec::new();
    for line in source[begin..].lines().take_while(|line| *line != "}").map(str::trim) {
        if let Some(text) = line.strip_prefix("/// ") {
            meaning.push(text);
        } else if let Some(name) = line.strip_suffix(',') {
            let hyphen =
                |(at, c): (usize, char)| if c.is_uppercase() && at > 0 { format!("-{c}") } else { c.into() };
            let name: String = name.char_indices().map(hyphen).collect();
            variants.push((name.to_lowercase(), std::mem::take(&mut meaning).join(" ")));
        }
    }
    variants
}

/// Fields of the struct `name` in a source file, with their doc comments.
pub fn fields(source: &str, name: &str) -> Vec<Field> {
    let head = format!("pub struct {name} {{\n");
    let begin = source.find(&head).unwrap_or_else(|| panic!("no struct {name}")) + head.len();
    let mut fields = Vec::new();
    let (mut meaning, mut attributes) = (Vec::new(), String::new());
    for line in source[begin..].lines().take_while(|line| *line != "}").map(str::trim) {
        let field = line.strip_prefix("pub ").and_then(|rest| rest.strip_suffix(',')?.split_once(": "));
        if let Some(text) = line.strip_prefix("/// ") {
            meaning.push(text);
        } else if line.starts_with("#[") {
            attributes.push_str(line);
        } else if let Some((name, kind)) = field {
            let meaning = std::mem::take(&mut meaning).join(" ");
            let meaning = meaning.strip_suffix('.').unwrap_or(&meaning).to_owned();
            assert!(!meaning.is_empty(), "the field {name} has no documentation");
            let attributes = std::mem::take(&mut attributes);
            fields.push(Field { name: name.into(), kind: kind.into(), attributes, meaning });
        }
    }
    fields
}
