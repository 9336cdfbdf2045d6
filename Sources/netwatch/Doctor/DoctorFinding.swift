/// A result of one check of `netwatch doctor`.
struct DoctorFinding: Encodable, Sendable {
    /// How serious a finding is.
    enum Result: String, Encodable {
        case ok
        /// A part of netwatch does not work, or works with limits. The rest is not affected.
        case warning
        /// Something that is configured or running does not work.
        case problem
    }

    let result: Result
    /// The fact.
    let message: String
    /// What to do; `nil` if there is nothing to do.
    let advice: String?

    static func ok(_ message: String) -> DoctorFinding {
        DoctorFinding(result: .ok, message: message, advice: nil)
    }

    static func warning(_ message: String, advice: String? = nil) -> DoctorFinding {
        DoctorFinding(result: .warning, message: message, advice: advice)
    }

    static func problem(_ message: String, advice: String? = nil) -> DoctorFinding {
        DoctorFinding(result: .problem, message: message, advice: advice)
    }

    static func problem(_ error: CommandError) -> DoctorFinding {
        problem(error.message, advice: error.hint)
    }
}
