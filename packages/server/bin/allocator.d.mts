/** Environment variables for the process of a service. */
export declare const allocatorSettings: Readonly<Record<string, string>>
