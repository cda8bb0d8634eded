//! Settings that contradict each other, contradict the upstream, or have no effect.

use std::net::{IpAddr, SocketAddr};

use hyper::Uri;
use overlock_llm::{Prefill, PrefillStyle, ServerInfo};

use crate::config::{Config, StrategySetting, UpstreamSettings};
use crate::ending::Failure;
use crate::output::Notes;

/// A setting without its usual effect.
#[derive(Debug)]
pub(super) struct Warning {
    message: String,
    hint: String,
}

impl Warning {
    pub(super) fn print(&self, notes: &mut Notes) {
        notes.warning(&self.message);
        notes.hint(&self.hint);
    }
}

/// Refuses settings that contradict each other.
pub(super) fn check(config: &Config) -> Result<(), Failure> {
    let never_prefills = config.upstream.prefill.style() == Some(PrefillStyle::None);
    if config.complete.strategy == StrategySetting::Prefill && never_prefills {
        return Err(Failure::Usage {
            message: "`complete.strategy` is `prefill`, but `upstream.prefill` is `none`".into(),
            hint: "set `complete.strategy` to `auto`, or `upstream.prefill` to how the upstream \
                   takes a prefill"
                .into(),
        });
    }
    Ok(())
}

/// Refuses an upstream that is the gateway itself, which would call itself forever.
pub(super) fn check_upstream(url: Option<&str>, listens: SocketAddr) -> Result<(), Failure> {
    let Some(uri) = url.and_then(|url| url.parse::<Uri>().ok()) else {
        return Ok(());
    };
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_here = match host.parse::<IpAddr>() {
        Ok(ip) => ip == listens.ip() || listens.ip().is_unspecified() && ip.is_loopback(),
        Err(_) => host == "localhost",
    };
    if is_here && uri.port_u16() == Some(listens.port()) {
        return Err(Failure::Usage {
            message: format!("the upstream {host}:{} is this gateway", listens.port()),
            hint: "set --upstream to the model server, or --listen to another port".into(),
        });
    }
    Ok(())
}

/// Settings without an effect, and settings that contradict the upstream if it is known.
pub(super) fn warnings(
    config: &Config,
    has_upstream: bool,
    server: Option<&ServerInfo>,
) -> Vec<Warning> {
    let unused = [
        unused_prefill(config),
        unused_discovery(config).filter(|_| !has_upstream),
    ];
    let prefill = server.and_then(|server| refused_prefill(config, server));
    let windows = server
        .into_iter()
        .flat_map(|it| too_large_windows(config, it));
    unused
        .into_iter()
        .flatten()
        .chain(prefill)
        .chain(windows)
        .collect()
}

fn unused_prefill(config: &Config) -> Option<Warning> {
    let style = prefill_style(config)?;
    let strategy = config.complete.strategy;
    matches!(
        strategy,
        StrategySetting::Overlap | StrategySetting::Remainder
    )
    .then(|| Warning {
        message: format!(
            "`upstream.prefill` is `{}` and has no effect, because `complete.strategy` is `{}`",
            style.name(),
            strategy.name(),
        ),
        hint: "set `complete.strategy` to `auto`, or remove `upstream.prefill`".into(),
    })
}

fn unused_discovery(config: &Config) -> Option<Warning> {
    let discovery = config.upstream.discovery;
    (discovery != UpstreamSettings::default().discovery).then(|| Warning {
        message: format!(
            "`upstream.discovery` is `{}` and has no effect, because there is no upstream",
            discovery.name(),
        ),
        hint: "set `upstream.url` or give --upstream URL, or remove `upstream.discovery`".into(),
    })
}

/// A configured prefill that the upstream is known not to support.
fn refused_prefill(config: &Config, server: &ServerInfo) -> Option<Warning> {
    let takes_none = |prefill: Prefill| !prefill.is_possible();
    let product = server.product;
    if let Some(style) = prefill_style(config) {
        return product.prefill().is_some_and(takes_none).then(|| Warning {
            message: format!(
                "`upstream.prefill` is `{}`, but {} does not support prefill",
                style.name(),
                product.name(),
            ),
            hint: "remove `upstream.prefill`".into(),
        });
    }
    let finding = server.prefill_finding()?;
    let is_wanted = config.complete.strategy == StrategySetting::Prefill;
    (is_wanted && takes_none(server.prefill)).then(|| Warning {
        message: format!(
            "`complete.strategy` is `prefill`, but the upstream does not support prefill ({})",
            finding.source,
        ),
        hint: "set `complete.strategy` to `auto`".into(),
    })
}

/// Configured windows that are larger than the upstream's.
fn too_large_windows<'a>(
    config: &'a Config,
    server: &'a ServerInfo,
) -> impl Iterator<Item = Warning> + 'a {
    config.own_windows().filter_map(|(name, window)| {
        let model = server.served(name)?;
        let real = model.window.filter(|real| *real < window)?;
        Some(Warning {
            message: format!(
                "`models.{name}.window` is {window}, but the upstream has a window of {real} tokens ({})",
                model.window_source,
            ),
            hint: format!(
                "set it to {real} or remove it, or start the upstream with a larger context"
            ),
        })
    })
}

/// The configured prefill style, if prefill is on.
fn prefill_style(config: &Config) -> Option<PrefillStyle> {
    let style = config.upstream.prefill.style();
    style.filter(|style| *style != PrefillStyle::None)
}
