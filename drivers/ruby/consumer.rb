# frozen_string_literal: true

require_relative 'seen'
require_relative 'sight'

# A tailable cursor, a change stream, or a repeated query. A cursor of this driver returns only with a message, so one
# thread reads, while the main thread watches the time and queries for missing messages.
class Consumer
  POSITION_LOST = 136
  EMPTY_PAUSE_S = 0.005
  BACK_OFF_FIRST_S = 0.01
  BACK_OFF_LAST_S = 1.0
  LOOK_S = 0.02
  # A source that returned nothing for this long is silent.
  SILENT_NS = 100_000_000
  BROKEN = [Mongo::Error, SocketError, SystemCallError, IOError].freeze

  # Reason for opening a source again; for a blind cursor, how long it was blind, and how many messages queries found
  # in that time.
  Lost = Struct.new(:reason, :code, :message, :reported, :blind_ns, :found)

  def initialize(options, control, stamps)
    @options, @control, @stamps = options, control, stamps
    @seen = Seen.new
    @sight = Sight.new(options[:await_ms])
    @lock = Mutex.new
    @opened = @empty = @position_lost = @last_ns = @last_sent_ns = 0
    @back_off_s = BACK_OFF_FIRST_S
    @collection = connect(options)
    open(nil)
  end

  def run
    @control.ready
    @last_ns = @control.start_ns
    Thread.new { read }
    watch
    @lock.synchronize do
      @over = true
      @stamps.flush
      { event: 'done', messages: @seen.count, failed: 0, reopened: polls? ? 0 : @opened - 1, reopened_empty: @empty,
        position_lost: @position_lost, caught_up: @seen.caught_up, duplicates_skipped: @seen.duplicates }
    end
  end

  private

  def polls?
    @options[:mode] == 'poll'
  end

  def tailable?
    @options[:mode] == 'tailable'
  end

  # Opens a cursor, and waits for its first reply.
  def open(lost)
    batch = { batch_size: @options[:batch_size] }.compact
    waits = { **batch, await_data: true, max_await_time_ms: @options[:await_ms] }
    # After a lost position, read from the oldest message on.
    filter = lost&.reason == 'position-lost' ? {} : @lock.synchronize { @seen.filter }
    @source =
      case @options[:mode]
      when 'tailable' then (@view = @collection.find(filter, cursor_type: :tailable_await, **waits)).each
      when 'poll' then @collection.find(filter, **batch).sort(_id: 1).each
      else
        waits[:resume_after] = @token if @token
        @collection.watch([{ '$match': { operationType: 'insert' } }], waits).each
      end
    @opened += 1
    @opened_ns = @control.now
    @lock.synchronize { @sight.opened(@opened_ns) }
    @catch_up_ns = @opened_ns + Sight::CATCH_UP_NS if tailable?
  end

  # Runs until the program ends.
  def read
    lost = nil
    loop do
      unless @source
        open(lost)
        tell(lost)
      end
      @source.each do |found|
        # For a change stream, the event containing the message.
        @token = found[:_id] if @options[:mode] == 'change-stream'
        receive(found[:fullDocument] || found)
        lost = nil
      end
      lost = ended(lost)
    rescue *BROKEN => e
      lost = broken(e)
    end
  rescue StandardError => e
    Common.fail(1, "#{e.class}: #{e.message}")
  end

  def tell(lost)
    return if polls? || lost.nil? || lost.reported

    event = { event: 'reopened', reason: lost.reason, at_ns: @control.now, code: lost.code, message: lost.message }
    event.update(blind_ns: lost.blind_ns, found: lost.found) if lost.found
    Common.emit(event)
    lost.reported = true
  end

  def receive(message, by_query: false)
    @working = true unless by_query
    is_new = @lock.synchronize do
      break if @over

      @last_ns = @control.now
      @last_sent_ns = [message[:s], @last_ns].min
      @back_off_s = BACK_OFF_FIRST_S
      is_new = @seen.accept(message[:p], message[:n], by_query)
      @sight.heard(@last_sent_ns, @last_ns) unless by_query
      next unless is_new

      @sight.found(@last_sent_ns, @last_ns) if by_query
      @stamps.consumed(message[:n], message[:s], @last_ns, message[:p])
      true
    end
    sleep(@options[:delay_us] / 1e6) if is_new && @options[:delay_us].positive?
    @working = false unless by_query
  end

  # The cursor is dead without an error: everything was read, or a tailable cursor found no message.
  def ended(lost)
    @source = nil
    return given_up if @given_up

    if polls?
      sleep(@options[:poll_ms] / 1e3)
      return nil
    end
    @empty += 1
    sleep(EMPTY_PAUSE_S)
    Lost.new('empty', nil, 'the cursor died without finding a message', lost&.reason == 'empty')
  end

  def broken(error)
    @source = @catch_up_ns = nil
    return given_up if @given_up

    code = code(error)
    if code == POSITION_LOST
      @position_lost += 1
      return Lost.new('position-lost', code, error.message, false)
    end
    sleep(@back_off_s)
    @back_off_s = [2 * @back_off_s, BACK_OFF_LAST_S].min
    network = !error.is_a?(Mongo::Error::OperationFailure)
    Lost.new(network ? 'connection' : 'other', code, error.message, false)
  end

  # Returns when everything was received, when nothing arrived for too long, or after a stop request.
  def watch
    until @seen.count >= @options[:messages] || @control.stopping
      sleep(LOOK_S)
      now = @control.now
      look_after(now)
      next unless !@working && now - @last_ns > @options[:idle_s] * 1e9

      @control.exit_code = 5
      return
    end
  end

  # Queries for missing messages: overtaken ones once, early for each cursor, and all while it is silent.
  def look_after(now)
    silent = tailable? && @source && !@given_up && !@working && now - [@last_ns, @opened_ns].max > SILENT_NS
    if silent && @sight.asks?(now)
      ask(newer: true)
    elsif @catch_up_ns && @last_sent_ns > @catch_up_ns
      @catch_up_ns = nil
      ask(newer: false)
    end
    give_up(now) if silent
  end

  # A server without an answer must not block the end. The reading thread finds broken connections.
  def aside
    Thread.new do
      yield
    rescue *BROKEN
      nil
    end
  end

  def ask(newer:)
    filter = @lock.synchronize { @seen.filter(newer: newer) }
    aside { @collection.find(filter).each { |message| receive(message, by_query: true) } }
  end

  # Ends a cursor on the server that does not return messages that queries find; the reading thread then regains control.
  def give_up(now)
    @lock.synchronize do
      blind_ns = @sight.blind_ns(now)
      next unless blind_ns

      @given_up = Lost.new('blind', nil, 'the cursor did not return messages that queries found', false, blind_ns, @sight.missed)
    end
    return unless @given_up

    # The driver's method to close a cursor is only for the reading thread, and there is no accessor for the cursor's ID.
    cursor = @view.instance_variable_get(:@cursor).id
    aside do
      @collection.database.command(killCursors: @collection.name, cursors: [cursor])
    rescue *BROKEN
      @given_up = nil
    end
  end

  # Reason for the cursor's end.
  def given_up
    lost, @given_up = @given_up, nil
    lost
  end
end
