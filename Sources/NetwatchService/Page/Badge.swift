internal import NetwatchEventLoop

/// A small SVG image with a label and a value, for other pages.
struct Badge {
    let label: String
    let value: String
    let colour: String

    /// The approximate width of a character, in pixels. `textLength` stretches each text to the width that is
    /// calculated with it.
    private static let characterWidth = 7

    var svg: HTML {
        let left = Self.width(of: label), right = Self.width(of: value)
        return """
            <svg xmlns="http://www.w3.org/2000/svg" width="\(left + right)" height="20" role="img" \
            aria-label="\(label): \(value)"><title>\(label): \(value)</title>\
            <rect width="\(left)" height="20" fill="#444d56"/>\
            <rect x="\(left)" width="\(right)" height="20" fill="\(colour)"/>\
            <g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">\
            <text x="6" y="14" textLength="\(left - 12)">\(label)</text>\
            <text x="\(left + 6)" y="14" textLength="\(right - 12)">\(value)</text></g></svg>

            """
    }

    private static func width(of text: String) -> Int { text.printable.count * characterWidth + 12 }
}

extension Badge {
    private static let green = "#1a7f37"
    private static let amber = "#9a6700"
    private static let red = "#b42318"
    private static let grey = "#57606a"

    /// `name: up`
    static func status(of host: ControlMessage.Host) -> Badge {
        let colours = ["up": green, "degraded": amber, "down": red]
        return Badge(label: host.name, value: host.state, colour: colours[host.state] ?? grey)
    }

    /// `uptime 24h: 99.95 %`
    static func uptime(_ part: Double?, _ window: HistoryWindow) -> Badge {
        let colour = part.map { $0 >= 0.99 ? green : $0 >= 0.95 ? amber : red } ?? grey
        let value = part.map(TextFormat.percentage) ?? "unknown"
        return Badge(label: "uptime \(window.rawValue)", value: value, colour: colour)
    }

    /// `latency: 12.4 ms`
    static func latency(of host: ControlMessage.Host) -> Badge {
        let value = host.latencySeconds.map { TextFormat.latency($0 * 1000) } ?? "unknown"
        return Badge(label: "latency", value: value, colour: host.latencySeconds == nil ? grey : green)
    }
}

/// The style sheet and the script of the status page.
enum PageAssets {
    static let style = """
        :root { color-scheme: light dark; --text: #1f2328; --back: #ffffff; --note: #57606a; --line: #d0d7de;
          --up: #1a7f37; --partly: #9a6700; --remote: #b42318; --local: #6639ba; --unknown: #6e7781; }
        @media (prefers-color-scheme: dark) {
          :root { --text: #e6edf3; --back: #0d1117; --note: #9198a1; --line: #3d444d; --up: #3fb950;
            --partly: #d29922; --remote: #ff7b72; --local: #bc8cff; --unknown: #8b949e; } }
        * { box-sizing: border-box; }
        body { margin: 0 auto; padding: 1rem; max-width: 72rem; color: var(--text); background: var(--back);
          font: 1rem/1.5 system-ui, sans-serif; }
        .name { margin: 0; font-weight: 600; color: var(--note); }
        h1 { margin: 0 0 .25rem; font-size: 1.5rem; line-height: 1.25; }
        h1::before { content: "✓ "; } h1.down::before { content: "✕ "; }
        h2 { margin: 2rem 0 .5rem; font-size: 1.125rem; } h3 { margin: 1rem 0 .25rem; font-size: 1rem; }
        p { margin: .25rem 0; } a { color: inherit; }
        .note { color: var(--note); font-size: .875rem; } td .note, th .note { display: block; font-weight: 400; }
        .scroll { overflow-x: auto; } table { width: 100%; border-collapse: collapse; }
        th, td { padding: .5rem .75rem .5rem 0; border-bottom: 1px solid var(--line); text-align: left;
          vertical-align: top; }
        thead th { font-size: .875rem; color: var(--note); white-space: nowrap; }
        tbody th, th + td { min-width: 10rem; overflow-wrap: anywhere; } .part { white-space: nowrap; }
        .state { font-weight: 600; white-space: nowrap; }
        .up { color: var(--up); } .partly { color: var(--partly); } .remote, h1.down { color: var(--remote); }
        .local { color: var(--local); } .unknown { color: var(--unknown); }
        svg { display: block; width: 12rem; height: 1.5rem; } svg.latency { width: 6rem; }
        .bars path { stroke: currentColor; stroke-width: 3; }
        .latency path { fill: none; stroke: currentColor; stroke-width: 1.5; vector-effect: non-scaling-stroke; }
        .legend span { white-space: nowrap; margin-right: .5rem; }
        dl { display: flex; flex-wrap: wrap; gap: 1.5rem; margin: .5rem 0; } dt { color: var(--note); }
        dd { margin: 0; font-size: 1.25rem; } footer { margin-top: 2rem; color: var(--note); font-size: .875rem; }
        :focus-visible { outline: 2px solid currentColor; outline-offset: 2px; }

        """

    /// Loads the page every five seconds while it is visible, and replaces its content if that has changed. A second
    /// rendering in JavaScript could disagree with the first.
    static let script = """
        "use strict";
        async function update() {
          if (document.hidden) return;
          try {
            const response = await fetch("/", { cache: "no-store" });
            if (!response.ok) throw new Error(response.status);
            const page = new DOMParser().parseFromString(await response.text(), "text/html");
            document.title = page.title;
            for (const name of ["main", "footer"]) {
              const [old, fresh] = [document.querySelector(name), page.querySelector(name)];
              if (old.innerHTML === fresh.innerHTML) continue;
              const focused = [...old.querySelectorAll("[tabindex], a")].indexOf(document.activeElement);
              const scrolled = [...old.querySelectorAll(".scroll")].map((region) => region.scrollLeft);
              old.innerHTML = fresh.innerHTML;
              old.querySelectorAll(".scroll").forEach((region, index) => region.scrollLeft = scrolled[index] ?? 0);
              if (focused >= 0) old.querySelectorAll("[tabindex], a")[focused]?.focus({ preventScroll: true });
            }
          } catch {
            document.getElementById("stale").textContent = " – the service does not respond; this is its last state";
          }
        }
        setInterval(update, 5000);
        document.addEventListener("visibilitychange", update);

        """
}
