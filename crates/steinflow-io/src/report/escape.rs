//! Text from files, made harmless in HTML.

/// For the content of an element and for a quoted attribute.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            c => safe.push(c),
        }
    }
    safe
}

/// For JSON inside a `<script>`, where no `</script>` or `<!--` may end or change what it is in.
pub(super) fn in_script(json: &str) -> String {
    // These stand in strings only, where JSON has another way to write them.
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_its_place() {
        assert_eq!(escape("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
        let json = serde_json::json!({ "</script><!--": "&<" }).to_string();
        let safe = in_script(&json);
        assert!(!safe.contains(['<', '>', '&']));
        let back: serde_json::Value = serde_json::from_str(&safe).unwrap();
        assert_eq!(back["</script><!--"], "&<");
    }
}
