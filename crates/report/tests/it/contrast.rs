//! Contrast of all text of the page with what it stands on, in light and in dark, from the variables of the style sheet.

use std::collections::BTreeMap;

const STYLE: &str = include_str!("../../assets/style.css");
const THEME: &str = include_str!("../../assets/app/theme.js");
const PAINT: [&str; 2] =
    [include_str!("../../assets/app/paint.js"), include_str!("../../assets/app/diagram.js")];

/// What the Web Content Accessibility Guidelines 2.2 ask of text (success criterion 1.4.3).
const LEAST: f64 = 4.5;

/// What text can stand on.
const SURFACES: [&str; 6] = ["paper", "card", "band", "hover", "changed", "alarm-soft"];

type Colors = BTreeMap<String, [f64; 3]>;

/// The declarations of the rules with that selector.
fn declarations(selector: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for rule in STYLE.split('}') {
        let Some((head, body)) = rule.split_once('{') else { continue };
        if head.rsplit("*/").next().unwrap().trim() == selector {
            let body = body.split("/*").map(|part| part.split("*/").last().unwrap()).collect::<String>();
            let pairs = body.split(';').filter_map(|d| d.split_once(':'));
            found.extend(pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())));
        }
    }
    found
}

fn color(text: &str) -> Option<[f64; 3]> {
    let digits = text.strip_prefix('#')?;
    let part = |i: usize| u8::from_str_radix(digits.get(2 * i..2 * i + 2)?, 16).ok();
    (digits.len() == 6).then_some(())?;
    Some([part(0)?, part(1)?, part(2)?].map(|c| f64::from(c) / 255.0))
}

fn colors(selector: &str) -> Colors {
    let all = declarations(selector).into_iter();
    all.filter_map(|(name, value)| Some((name.strip_prefix("--")?.to_owned(), color(&value)?))).collect()
}

/// Relative luminance, as the guidelines define it.
fn luminance(color: [f64; 3]) -> f64 {
    let [r, g, b] = color.map(|c| if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) });
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

fn contrast(a: [f64; 3], b: [f64; 3]) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// The variables that a rule uses for a property.
fn variable<'a>(body: &'a str, property: &str) -> Option<&'a str> {
    body.split(';').find_map(|declaration| {
        let (name, value) = declaration.split_once(':')?;
        (name.trim() == property).then_some(())?;
        value.trim().strip_prefix("var(--")?.strip_suffix(')')
    })
}

/// Every colour of text with every surface that it can stand on.
fn pairs() -> Vec<(String, String)> {
    let mut texts: Vec<String> = (0..8).map(|hue| format!("t{hue}")).collect();
    let mut pairs = Vec::new();
    for rule in STYLE.split('}') {
        let Some((head, body)) = rule.rsplit_once('{') else { continue };
        let text =
            variable(body, "color").or_else(|| head.contains("text").then(|| variable(body, "fill"))?);
        let Some(text) = text else { continue };
        match variable(body, "background") {
            Some(own) => pairs.push((text.to_owned(), own.to_owned())),
            None => texts.push(text.to_owned()),
        }
    }
    // The diagram writes in colours of the theme and of types.
    for file in PAINT {
        for line in file.lines().filter(|l| l.contains("fillStyle") || l.contains("label(")) {
            for name in line.split("theme.colors.").skip(1) {
                texts.push(name.chars().take_while(|c| c.is_alphanumeric()).collect());
            }
        }
    }
    // Marks and the lines between them are no text.
    texts.retain(|text| !SURFACES.contains(&text.as_str()) && text != "line");
    texts.sort();
    texts.dedup();
    for text in &texts {
        pairs.extend(SURFACES.map(|surface| (text.clone(), surface.to_owned())));
    }
    pairs
}

#[test]
fn all_text_has_enough_contrast_in_light_and_dark() {
    let light = colors(":root");
    let mut dark = light.clone();
    dark.extend(colors(":root[data-theme=\"dark\"]"));
    let pairs = pairs();
    for name in ["ink", "soft", "quiet", "accent", "alarm", "t0", "t7"] {
        assert!(pairs.iter().any(|(text, _)| text == name), "{name} is a colour of text: {pairs:?}");
    }
    let mut faint = Vec::new();
    for (theme, colors) in [("light", &light), ("dark", &dark)] {
        for (text, surface) in &pairs {
            let found = contrast(colors[text], colors[surface]);
            if found < LEAST {
                faint.push(format!("{theme}: {text} on {surface} {found:.2}"));
            }
        }
    }
    assert!(faint.is_empty(), "{}", faint.join("\n"));
}

#[test]
fn contrast_is_that_of_the_guidelines() {
    let of = |a: &str, b: &str| (contrast(color(a).unwrap(), color(b).unwrap()) * 100.0).round() / 100.0;
    assert_eq!(
        [of("#000000", "#ffffff"), of("#777777", "#ffffff"), of("#767676", "#ffffff")],
        [21.0, 4.48, 4.54]
    );
}

/// What fades does so in its marks: text that is drawn with less than full strength would be too faint.
#[test]
fn the_diagram_writes_text_with_full_strength_only() {
    let diagram = PAINT[1];
    let caption = diagram.split_once("  caption(ctx, event").unwrap().1;
    let (before, _) = caption.split_once("label(").unwrap();
    assert!(before.contains("ctx.globalAlpha = 1;"), "{before}");
    assert!(THEME.contains("\"quiet\""));
}
