/// A measurement and the programs that it is compared with. They run alternately for several rounds.
package struct Series: Sendable {
    /// The name that selects the series on the command line.
    package let name: String
    package let title: String
    /// The arguments of our measurement.
    package let ours: String
    /// The compared programs in the order in which they run; empty if there is nothing to compare with.
    package let others: [Other]
    package let rounds: Int
    package let figures: [Figure]
    /// Shell commands that run once, before the first round.
    package let preparations: [String]
    /// Environment variables for the commands, in the format of `env(1)`.
    package let environment: [String]

    /// - Parameter name: The name of the series. Default: the name of our measurement.
    package init(
        _ name: String? = nil,
        title: String,
        ours: String,
        others: [Other] = [],
        rounds: Int,
        figures: [Figure],
        preparations: [String] = [],
        environment: [String] = []
    ) {
        self.name = name ?? String(ours.prefix { $0 != " " })
        self.title = title
        self.ours = ours
        self.others = others
        self.rounds = rounds
        self.figures = figures
        self.preparations = preparations
        self.environment = environment
    }

    /// A program that prints comparable figures.
    package struct Other: Sendable {
        enum Command {
            /// A program in the floors directory, with its arguments.
            case floor(String)
            /// A measurement of this program, with its arguments.
            case measurement(String)
            /// Any other program, which may be missing.
            case program(String)

            var mayBeMissing: Bool {
                if case .program = self { true } else { false }
            }
        }

        let name: String
        let command: Command

        package static func floor(_ arguments: String, name: String = "floor") -> Other {
            Other(name: name, command: .floor(arguments))
        }

        /// Another program, measured by this one. `FLOORS/` in its arguments is replaced by the floors directory.
        package static func measured(_ name: String, by arguments: String) -> Other {
            Other(name: name, command: .measurement(arguments))
        }

        package static func program(_ name: String, _ command: String) -> Other {
            Other(name: name, command: .program(command))
        }
    }
}

/// A figure that a measurement prints.
package struct Figure: Sendable {
    package let name: String
    package let unit: String
    package let aims: [Aim]

    package init(_ name: String, _ unit: String, aims: [Aim] = []) {
        self.name = name
        self.unit = unit
        self.aims = aims
    }

    /// A target for our result: at most, or at least, a multiple of another result plus a constant.
    package struct Aim: Sendable {
        let isAtMost: Bool
        let factor: Double
        let plus: Double
        /// The program whose result is multiplied; `nil`: the first compared program.
        let other: String?

        package static func atMost(_ factor: Double = 0, of other: String? = nil, plus: Double = 0) -> Aim {
            Aim(isAtMost: true, factor: factor, plus: plus, other: other)
        }

        package static func atLeast(_ factor: Double, of other: String? = nil) -> Aim {
            Aim(isAtMost: false, factor: factor, plus: 0, other: other)
        }

        func text(_ other: String?) -> String {
            let product = factor > 0 ? "\(factor) × \(other ?? "")" : nil
            let parts = [product, plus > 0 || factor == 0 ? "\(plus)" : nil]
            return (isAtMost ? "≤ " : "≥ ") + parts.compactMap(\.self).joined(separator: " + ")
        }

        /// Returns whether the median over all rounds meets the target.
        func isMet(ours: [Double], others: [Double]) -> Bool {
            let bounds = others.isEmpty ? ours.map { _ in plus } : others.map { factor * $0 + plus }
            let difference = median(zip(ours, bounds).map { $0 - $1 })
            return isAtMost ? difference <= 0 : difference >= 0
        }
    }
}
