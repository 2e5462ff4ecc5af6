/** The origin of your application's backend, which knows who is signed in on this phone, and that of Ringwire. */
export const backend = 'https://app.example.com'
export const service = 'https://calls.example.com'

/** The answer of `POST /v1/call/session-token`, which the backend asked with the `device_id` of this installation. */
export const getToken = () => fetch(`${backend}/call-token`, { method: 'POST' })
