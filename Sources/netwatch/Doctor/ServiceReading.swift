internal import NetwatchService

/// What the service reports about itself and its queue. It is read once, before all checks, so that they describe the
/// same state.
struct ServiceReading {
    /// How long the service may take for each response.
    private static let timeout: Duration = .seconds(5)

    let socket: ArgumentBytes
    let summary: ServiceSummary
    /// `nil` if the service does not respond, or if it has an earlier version, which does not have this route.
    private(set) var status: ControlMessage.Status?
    /// The comparison of the service's files with its configuration; `nil` also if this user has no full access.
    private(set) var configuration: ControlMessage.Configuration?
    /// The check of the database; `nil` in the same cases, and if the service did not respond in time.
    private(set) var storeCheck: ControlMessage.StoreCheck?
    /// What this user may do with requests; `nil` if the service does not say it.
    private(set) var rights: String?

    static func reading(_ options: ServiceOptions) async -> Result<ServiceReading, CommandError> {
        do throws(CommandError) {
            let socket = try options.path()
            return .success(await ServiceReading(socket: socket))
        } catch {
            return .failure(error)
        }
    }

    private init(socket: ArgumentBytes) async {
        self.socket = socket
        summary = await ServiceSummary.asking(socket, timeout: Self.timeout)
        guard summary.state == .running else { return }
        let client = ServiceClient(path: socket, busyTimeout: .zero)
        status = try? await client.get("/v1/status", within: Self.timeout, as: ControlMessage.Status.self)
        configuration = try? await client.get(
            "/v1/configuration",
            within: Self.timeout,
            as: ControlMessage.Configuration.self
        )
        storeCheck = try? await client.get(
            "/v1/queue/check",
            within: Self.timeout,
            as: ControlMessage.StoreCheck.self
        )
        rights = await Self.rights(client)
    }

    /// The list of uploads is only for users who may submit.
    private static func rights(_ client: ServiceClient) async -> String? {
        do throws(CommandError) {
            _ = try await client.get("/v1/bodies", within: timeout, as: ControlMessage.StagedBodies.self)
            return "submit"
        } catch {
            return error.status == .noPermission ? "read but not submit" : nil
        }
    }
}
