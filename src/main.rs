//! The `leasehold` command; everything is in the library.

fn main() -> std::process::ExitCode {
    leasehold::cli::main()
}
