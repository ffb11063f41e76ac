//! C declarations of the public items of a Rust source file.
//!
//! It knows what this interface is made of and no more: structs and enums with a C layout, and functions of C's calling
//! convention. Anything else public with a C name is an error.

use syn::{Attribute, Expr, Fields, FnArg, Item, Lit, Meta, Pat, ReturnType, Type};

pub(crate) const WIDTH: usize = 100;

/// The declarations, in the order of the source, with an empty line behind each.
pub(crate) fn of(source: &str) -> String {
    let file = syn::parse_file(source).expect("the source is Rust");
    file.items.iter().filter_map(declaration).map(|text| text + "\n").collect()
}

fn declaration(item: &Item) -> Option<String> {
    match item {
        Item::Struct(item) if is(&item.attrs, "repr") => Some(structure(item)),
        Item::Enum(item) if is(&item.attrs, "repr") => Some(constants(item)),
        Item::Fn(item) if item.sig.abi.is_some() => Some(function(item)),
        _ => None,
    }
}

fn structure(item: &syn::ItemStruct) -> String {
    let Fields::Named(fields) = &item.fields else { panic!("{}: fields need names", item.ident) };
    let lines: Vec<_> = fields
        .named
        .iter()
        .map(|field| {
            let name = field.ident.as_ref().expect("a named field").to_string();
            (format!("  {};", variable(&field.ty, &name)), documentation(&field.attrs))
        })
        .collect();
    format!("{}typedef struct {{\n{}}} {};\n", comment("", &documentation(&item.attrs)), remarked(&lines), item.ident)
}

fn constants(item: &syn::ItemEnum) -> String {
    let lines: Vec<_> = item
        .variants
        .iter()
        .map(|variant| {
            let (_, value) = variant.discriminant.as_ref().expect("a constant has its number in the source");
            (format!("{} = {}", variant.ident, number(value)), documentation(&variant.attrs))
        })
        .collect();
    comment("", &documentation(&item.attrs)) + &enumeration(lines)
}

/// An enum without a name, of constants and their remarks.
pub(crate) fn enumeration(mut constants: Vec<(String, String)>) -> String {
    let last = constants.len().saturating_sub(1);
    for (place, (constant, _)) in constants.iter_mut().enumerate() {
        // C++98 knows no comma behind the last.
        *constant = format!("  {constant}{}", if place == last { "" } else { "," });
    }
    format!("enum {{\n{}}};\n", remarked(&constants))
}

fn function(item: &syn::ItemFn) -> String {
    let arguments: Vec<_> = item
        .sig
        .inputs
        .iter()
        .map(|argument| match argument {
            FnArg::Typed(typed) => match &*typed.pat {
                Pat::Ident(name) => variable(&typed.ty, &name.ident.to_string()),
                _ => panic!("{}: arguments need names", item.sig.ident),
            },
            FnArg::Receiver(_) => panic!("{}: a method", item.sig.ident),
        })
        .collect();
    let name = match &item.sig.output {
        ReturnType::Type(_, returned) => variable(returned, &item.sig.ident.to_string()),
        ReturnType::Default => format!("void {}", item.sig.ident),
    };
    let arguments = if arguments.is_empty() { vec!["void".to_owned()] } else { arguments };
    let mut text = format!("{name}(");
    let indent = " ".repeat(text.len());
    let mut column = text.len();
    for (i, argument) in arguments.iter().enumerate() {
        let end = if i + 1 == arguments.len() { ");" } else { "," };
        let gap = usize::from(i > 0);
        if i > 0 && column + gap + argument.len() + end.len() > WIDTH {
            text += &format!("\n{indent}");
            column = indent.len();
        } else if i > 0 {
            text.push(' ');
            column += 1;
        }
        text += argument;
        text += end;
        column += argument.len() + end.len();
    }
    format!("{}{text}\n", comment("", &documentation(&item.attrs)))
}

/// A C declaration of `name`, without the semicolon.
fn variable(rust: &Type, name: &str) -> String {
    match rust {
        Type::Path(path) => {
            let word = path.path.segments.last().expect("a type has a name").ident.to_string();
            let word = match word.as_str() {
                "u8" => "uint8_t",
                "u16" => "uint16_t",
                "u32" => "uint32_t",
                "u64" => "uint64_t",
                "i32" => "int32_t",
                "c_char" => "char",
                other if other.starts_with("millpond_") => other,
                other => panic!("{name}: C has no {other}"),
            };
            format!("{word} {name}")
        }
        Type::Ptr(pointer) => {
            let pointed = variable(&pointer.elem, &format!("*{name}"));
            if pointer.const_token.is_some() { format!("const {pointed}") } else { pointed }
        }
        Type::Array(array) => format!("{}[{}]", variable(&array.elem, name), number(&array.len)),
        _ => panic!("{name}: no C type"),
    }
}

fn number(value: &Expr) -> String {
    match value {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.base10_digits().to_owned(),
            _ => panic!("a constant is a whole number"),
        },
        Expr::Unary(unary) => format!("-{}", number(&unary.expr)),
        _ => panic!("a constant is a whole number"),
    }
}

/// The documentation up to its first heading, as one text.
fn documentation(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    let lines: Vec<_> = lines.take_while(|line| !line.starts_with('#')).filter(|line| !line.is_empty()).collect();
    lines.join(" ")
}

fn is(attributes: &[Attribute], name: &str) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident(name))
}

/// Lines of C, each with its remark beside it if there is room, else above it.
fn remarked(lines: &[(String, String)]) -> String {
    let fits = |column: usize, remark: &str| column + remark.chars().count() + " /*  */".len() <= WIDTH;
    let column = lines.iter().map(|(code, _)| code.len()).max().unwrap_or(0);
    let line = |(code, remark): &(String, String)| {
        let remark = small(remark);
        if remark.is_empty() {
            format!("{code}\n")
        } else if fits(column, &remark) {
            format!("{code:column$} /* {remark} */\n")
        } else {
            format!("{}{code}\n", comment("  ", &remark))
        }
    };
    lines.iter().map(line).collect()
}

/// A remark is no sentence. Its first word keeps a capital only if it is a name.
fn small(remark: &str) -> String {
    let text = remark.strip_suffix('.').unwrap_or(remark);
    let word = text.split(' ').next().unwrap_or_default();
    if word.chars().skip(1).any(char::is_uppercase) {
        return text.to_owned();
    }
    let first = text.chars().next().into_iter().flat_map(char::to_lowercase);
    first.chain(text.chars().skip(1)).collect()
}

/// A comment on lines of its own.
pub(crate) fn comment(indent: &str, text: &str) -> String {
    let mut lines = vec![format!("{indent}/*")];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is a line");
        // Room for the end of the comment on every line, so that any may be the last.
        if last.chars().count() + 1 + word.chars().count() + " */".len() > WIDTH {
            lines.push(format!("{indent} * {word}"));
        } else {
            last.push(' ');
            last.push_str(word);
        }
    }
    lines.join("\n") + " */\n"
}
