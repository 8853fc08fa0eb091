//! `bentpipe web`: serves the laboratory, which simulates in the browser.

use std::env;
use std::process::{Command, Stdio};

use tiny_http::{Header, Method, Request, Response, Server};

use crate::args::WebArgs;
use crate::failure::Failure;
use crate::output;

/// Path and content of each file of a page.
type Page = &'static [(&'static str, &'static [u8])];

// The files that `make web` built before this program was compiled; empty otherwise.
include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// Serves the page until the program is interrupted.
pub fn web(args: &WebArgs) -> Result<(), Failure> {
    if PAGE.is_empty() {
        return Err(Failure::Missing(
            "this build has no page for a browser: `make web` builds it, then `make build` puts it into the program"
                .into(),
        ));
    }
    let server = Server::http(args.listen)
        .map_err(|error| Failure::Work(format!("--listen: found {}: {error}", args.listen)))?;
    let address = format!("http://{}/", server.server_addr());
    output::print(&format!("The laboratory is at {address} until Ctrl-C.\n"))?;
    open(&address);
    for request in server.incoming_requests() {
        respond(request);
    }
    Ok(())
}

/// Opens a page in the browser of this desktop, if there is one.
fn open(address: &str) {
    if env::var_os("DISPLAY").is_some() || env::var_os("WAYLAND_DISPLAY").is_some() {
        let mut browser = Command::new("xdg-open");
        // Without this program, the user opens the address that was printed.
        let _ = browser.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    }
}

fn respond(request: Request) {
    let asks = matches!(request.method(), Method::Get | Method::Head);
    let found = find(PAGE, request.url()).filter(|_| asks);
    // A browser that has gone needs no answer.
    let _ = match found {
        Some((path, content)) => {
            let kind = Header::from_bytes("Content-Type", kind(path)).expect("the header is valid");
            request.respond(Response::from_data(content).with_header(kind))
        }
        None => request.respond(Response::empty(404)),
    };
}

/// Returns the file at the path of a URL; the folder has the page itself.
fn find(page: Page, url: &str) -> Option<(&'static str, &'static [u8])> {
    let path = url.split('?').next()?.strip_prefix('/')?;
    let path = if path.is_empty() { "index.html" } else { path };
    page.iter().find(|(name, _)| *name == path).copied()
}

/// Returns the type of a file. A browser compiles WebAssembly only under its own type.
fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("wasm") => "application/wasm",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_page_are_served_each_with_its_type() {
        let page: Page = &[("index.html", b"page"), ("assets/engine.wasm", b"engine")];
        let found = |url| find(page, url).map(|(path, content)| (kind(path), content));
        assert_eq!(found("/"), Some(("text/html; charset=utf-8", &b"page"[..])));
        assert_eq!(found("/index.html?again"), found("/"));
        assert_eq!(found("/assets/engine.wasm"), Some(("application/wasm", &b"engine"[..])));
        for url in ["/../index.html", "/assets/", "index.html", "/etc/passwd"] {
            assert_eq!(found(url), None, "{url}");
        }
    }
}
