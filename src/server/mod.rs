//! Floor 8: HTTP.
