//! `millpond-bindgen IN.wasm OUT_DIR`: writes `engine.js` and `engine_bg.wasm` as modules for browsers, and for Node.js as well.

use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [input, output] = arguments.as_slice() else {
        eprintln!("usage: millpond-bindgen IN.wasm OUT_DIR");
        return ExitCode::from(2);
    };
    let mut bindgen = Bindgen::new();
    let made = bindgen.input_path(input).out_name("engine").typescript(false).web(true).and_then(|it| it.generate(output));
    match made {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("millpond-bindgen: {error:#}");
            ExitCode::FAILURE
        }
    }
}
