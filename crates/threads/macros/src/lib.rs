//! The attribute `#[demi_threads::test]`.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// Makes a function a test of all schedules within a bound.
///
/// `#[demi_threads::test(bound = 2)]` bounds preemptions, `delays = 3` delays instead; `budget = 10_000` says how many executions there are at most,
/// `name = value` calls the method of that name of `demi_threads::Check`.
#[proc_macro_attribute]
pub fn test(options: TokenStream, item: TokenStream) -> TokenStream {
    expand(options, item)
        .unwrap_or_else(|message| format!("::core::compile_error!({message:?});").parse().unwrap_or_default())
}

/// Tokens that a text gives. Where they stand is the attribute.
fn read(text: &str) -> Result<TokenStream, String> {
    text.parse().map_err(|_| format!("cannot be read: {text}"))
}

/// The options as calls of methods.
fn calls(options: TokenStream) -> Result<TokenStream, String> {
    let mut calls = TokenStream::new();
    let mut tokens = options.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let TokenTree::Ident(name) = token else {
            return Err(format!("expected the name of an option, found `{token}`"));
        };
        match tokens.next() {
            Some(TokenTree::Punct(sign)) if sign.as_char() == '=' => {}
            _ => return Err(format!("expected `{name} = value`")),
        }
        let mut value = TokenStream::new();
        for token in tokens.by_ref() {
            match token {
                TokenTree::Punct(sign) if sign.as_char() == ',' => break,
                token => value.extend([token]),
            }
        }
        if value.is_empty() {
            return Err(format!("expected a value after `{name} =`"));
        }
        calls.extend(read(".")?);
        calls.extend([TokenTree::Ident(name), Group::new(Delimiter::Parenthesis, value).into()]);
    }
    Ok(calls)
}

fn expand(options: TokenStream, item: TokenStream) -> Result<TokenStream, String> {
    let calls = calls(options)?;
    let all: Vec<TokenTree> = item.into_iter().collect();
    let is =
        |token: &TokenTree, word: &str| matches!(token, TokenTree::Ident(name) if name.to_string() == word);
    let begin = all.iter().position(|token| is(token, "fn")).ok_or("expected a function")?;
    if all[..begin].iter().any(|token| is(token, "async")) {
        return Err("a test is not async; use demi_threads::future::block_on inside".to_owned());
    }
    let (Some(TokenTree::Ident(name)), Some(TokenTree::Group(arguments)), Some(TokenTree::Group(body))) =
        (all.get(begin + 1), all.get(begin + 2), all.last())
    else {
        return Err("expected a function without parameters".to_owned());
    };
    if !arguments.stream().is_empty() || body.delimiter() != Delimiter::Brace || all.len() != begin + 4 {
        return Err("a test has no parameters and returns nothing".to_owned());
    }
    let path = read(&format!("::core::concat!(::core::module_path!(), \"::{name}\")"))?;
    // The body's own tokens are kept, so that places in it are where the reader has them.
    let mut closure = read("||")?;
    closure.extend([TokenTree::Group(body.clone())]);
    let mut inside = read("::demi_threads::Check::named")?;
    inside.extend([TokenTree::from(Group::new(Delimiter::Parenthesis, path))]);
    inside.extend(calls);
    inside.extend(read(".run")?);
    inside.extend([TokenTree::from(Group::new(Delimiter::Parenthesis, closure))]);
    let mut test = read("#[::core::prelude::v1::test]")?;
    test.extend(all[..=begin + 2].iter().cloned());
    test.extend([TokenTree::from(Group::new(Delimiter::Brace, inside))]);
    Ok(test)
}
