internal import OfflineQueue

/// The routes of the service. docs/openapi.json describes all of them.
extension ServiceState {
    /// The routes of the control socket.
    ///
    /// - Parameters:
    ///   - access: The rules for users without full access.
    ///   - defaults: The options of submitted requests that do not have their own.
    func routes(access: AccessRules, defaults: RequestDefaults = RequestDefaults()) -> [ControlRouter.Route] {
        QueueRoutes(queue: queue, isRunning: true, access: access, defaults: defaults).routes + readOnlyRoutes
            + ServiceRoutes(state: self).configurationRoutes
    }

    /// The routes of the TCP listener.
    var readOnlyRoutes: [ControlRouter.Route] {
        ServiceRoutes(state: self).routes + HostRoutes(hosts: hosts).routes + PageRoutes(state: self).routes
    }
}
