/** @jsxImportSource preact */
import { useState } from 'preact/hooks'
import { ask, textOf } from './ask.ts'

export function SignIn({ onSignedIn }: { onSignedIn: (name: string) => void }) {
  const [token, setToken] = useState('')
  const [name, setName] = useState('')
  const [problem, setProblem] = useState('')
  const [isBusy, setBusy] = useState(false)

  async function enter(event: Event): Promise<void> {
    event.preventDefault()
    setBusy(true)
    setProblem('')
    try {
      const answer = await ask<{ name: string }>('session', { method: 'POST', body: { token, name } })
      onSignedIn(answer.name)
    } catch (error) {
      setProblem(textOf(error))
      setBusy(false)
    }
  }

  return (
    <main class="sign-in">
      <form class="panel" onSubmit={enter}>
        <div class="brand">
          <img src="icon.svg" alt="" />
          Ringwire
        </div>
        <h1>Operators</h1>
        <label>
          Admin token
          <input
            type="password"
            name="token"
            autocomplete="current-password"
            required
            value={token}
            data-testid="token"
            onInput={({ currentTarget }) => setToken(currentTarget.value)}
          />
        </label>
        <label>
          Your name, for the audit log
          <input
            name="name"
            autocomplete="username"
            maxLength={60}
            value={name}
            data-testid="name"
            onInput={({ currentTarget }) => setName(currentTarget.value)}
          />
        </label>
        {problem !== '' && (
          <p class="note" data-tone="bad" role="alert">
            {problem}
          </p>
        )}
        <button type="submit" class="main" disabled={isBusy} data-testid="enter">
          Sign in
        </button>
        <p class="soft">The token is RINGWIRE_ADMIN_TOKEN of the service. The browser forgets it after 12 hours.</p>
      </form>
    </main>
  )
}
