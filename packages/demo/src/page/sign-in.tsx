import { type FormEvent, useLayoutEffect, useRef } from 'react'
import type { Identity, Role } from './backend.ts'

export function SignIn({ onEnter }: { onEnter(identity: Identity): void }) {
  const name = useRef<HTMLInputElement>(null)
  // Before the page counts as loaded: what is typed at once is not lost.
  useLayoutEffect(() => name.current?.focus(), [])
  const enter = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const fields = new FormData(event.currentTarget)
    const role = fields.get('role') as Role
    onEnter({ name: String(fields.get('name')).trim(), role, device_id: crypto.randomUUID() })
  }
  return (
    <main className="sign-in">
      <div className="hero">
        <p className="brand">
          <img src="icon.svg" alt="" width="32" height="32" />
          Ringwire
        </p>
        <h1>Calls that hold&nbsp;on.</h1>
        <p className="lead">
          One-to-one audio and video in the browser. Reload the page, cut the network, restart the service: the call
          goes on.
        </p>
        <div className="waves" aria-hidden="true">
          <i />
          <i />
          <i />
          <i />
        </div>
      </div>
      <form className="card" onSubmit={enter}>
        <h2>Go online</h2>
        <p className="lead">Open this page twice: once as a customer, once as an agent.</p>
        <label className="field">
          <span>Your name</span>
          <input
            ref={name}
            name="name"
            type="text"
            required
            maxLength={40}
            pattern=".*[\p{L}\p{N}].*"
            autoComplete="nickname"
            placeholder="Ada"
            data-testid="name"
          />
        </label>
        <fieldset className="roles">
          <legend>You are a</legend>
          <label>
            <input type="radio" name="role" value="customer" defaultChecked data-testid="role-customer" />
            <span>Customer</span>
          </label>
          <label>
            <input type="radio" name="role" value="agent" data-testid="role-agent" />
            <span>Agent</span>
          </label>
        </fieldset>
        <button className="primary" type="submit" data-testid="enter">
          Go online
        </button>
        <p className="fine">Customers call agents and agents call customers.</p>
      </form>
    </main>
  )
}
