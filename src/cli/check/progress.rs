//! How a campaign is going: live lines on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::sim::campaign::Summary;

use super::super::live;
use super::super::output::{count, decimal};

/// Time from one line to the next where lines stay.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Time from one look of the live lines to the next.
const LIVE_EVERY: Duration = Duration::from_millis(100);

/// Progress of a campaign.
pub(super) struct Progress {
    /// Seeds in all, if that is known.
    all: Option<u64>,
    /// How long to go on.
    limit: Option<Duration>,
    begin: Instant,
    told: Duration,
    bar: Option<ProgressBar>,
}

impl Progress {
    pub fn start(all: Option<u64>, limit: Option<Duration>) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{wide_msg}\n{prefix}") {
                bar.set_style(style);
            }
            bar
        });
        Self {
            all,
            limit,
            begin: now(),
            told: Duration::ZERO,
            bar,
        }
    }

    /// Shows how far it is, if that was not shown just now.
    pub fn show(&mut self, summary: &Summary) {
        let passed = self.begin.elapsed();
        let pause = if self.bar.is_some() {
            LIVE_EVERY
        } else {
            LINE_EVERY
        };
        if passed < self.told + pause {
            return;
        }
        self.told = passed;
        let line = self.line(summary, passed);
        match &self.bar {
            Some(bar) => {
                bar.set_message(line);
                bar.set_prefix(faults(summary));
                bar.tick();
            }
            None => live::say(&line),
        }
    }

    fn line(&self, summary: &Summary, passed: Duration) -> String {
        let seconds = passed.as_secs_f64().max(1e-3);
        let all = self.all.map(|all| format!("/{}", count(all)));
        let faults: u64 = (summary.operations.iter())
            .filter(|(action, _)| action.is_fault())
            .map(|(_, (times, _))| times)
            .sum();
        format!(
            "{} seeds{} · {} seeds/s · {} of cluster time a second · {} faults",
            count(summary.seeds),
            all.unwrap_or_default(),
            decimal(summary.seeds as f64 / seconds, 1),
            humantime::format_duration(Duration::from_secs(
                (summary.elapsed_us as f64 / 1e6 / seconds) as u64
            )),
            count(faults),
        )
    }

    pub fn is_time_up(&self) -> bool {
        self.limit
            .is_some_and(|limit| self.begin.elapsed() >= limit)
    }

    /// Takes the live lines away; how long it took.
    pub fn finish(&mut self) -> Duration {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        self.begin.elapsed()
    }
}

/// Faults by kind, in lines of less than 80 columns.
fn faults(summary: &Summary) -> String {
    let mut text = String::new();
    let mut width = 0;
    for (action, (times, _)) in &summary.operations {
        let item = format!("{action} {}", count(*times));
        if width > 0 && width + item.len() + 2 >= 78 {
            text.push('\n');
            width = 0;
        }
        if width > 0 {
            text.push_str("  ");
            width += 2;
        }
        text.push_str(&item);
        width += item.len();
    }
    text
}

#[allow(
    clippy::disallowed_methods,
    reason = "it shows how fast a campaign goes"
)]
fn now() -> Instant {
    Instant::now()
}
