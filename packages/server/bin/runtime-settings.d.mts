/** Environment variables for the process of a service. */
export declare const runtimeSettings: Readonly<Record<string, string>>
