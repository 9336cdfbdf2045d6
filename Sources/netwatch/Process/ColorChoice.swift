internal import ArgumentParser
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// When text has colours.
enum ColorChoice: String, ExpressibleByArgument, CaseIterable {
    /// On a terminal, unless a variable says otherwise; see ``showsColors(onTerminal:_:)``.
    case auto
    case always, never

    /// The choice of the user of this process.
    static let current = Lock(ColorChoice.auto)
    private static let variables = ProcessInfo.processInfo.environment

    /// Returns whether text that is written to a descriptor has colours.
    static func showsColors(on descriptor: CInt) -> Bool {
        current.withLock { $0 }.showsColors(onTerminal: isatty(descriptor) == 1, variables)
    }

    /// Returns whether text has colours.
    ///
    /// Without a choice, `NO_COLOR` prevents colours (no-color.org), and `CLICOLOR_FORCE` enables them unless it is 0.
    /// Otherwise text on a terminal has colours, except if `TERM` says that the terminal has none.
    ///
    /// - Parameters:
    ///   - isTerminal: Whether the text is written to a terminal.
    ///   - variables: The environment.
    func showsColors(onTerminal isTerminal: Bool, _ variables: [String: String]) -> Bool {
        func isSet(_ name: String) -> Bool { variables[name]?.isEmpty == false }
        switch self {
        case .always: return true
        case .never: return false
        case .auto where isSet("NO_COLOR"): return false
        case .auto where isSet("CLICOLOR_FORCE") && variables["CLICOLOR_FORCE"] != "0": return true
        case .auto: return isTerminal && isSet("TERM") && variables["TERM"] != "dumb"
        }
    }
}

/// The option of the commands whose text has colours.
struct ColorOption: ParsableArguments {
    @Option(help: "When to use colours: auto (on a terminal, unless $NO_COLOR is set), always or never.")
    var color = ColorChoice.auto

    /// Sets the choice before the command runs, so that its messages follow it, too.
    func validate() {
        ColorChoice.current.withLock { $0 = color }
    }
}
