# frozen_string_literal: true

# Producer and consumer of `dyno tail` on the Ruby driver: threads, each with one insert in flight.

require 'json'
require 'logger'
require 'mongo'
require 'uri'
require_relative 'common'
require_relative 'consumer'

# Version 2.5 of the driver, Debian's, calls a method that Ruby 3 removed.
URI.define_singleton_method(:decode) { |text| URI.decode_www_form_component(text) } unless URI.respond_to?(:decode)

# Standard output is reserved for events, standard error for the one line with the reason for the end.
Mongo::Logger.logger = Logger.new(File::NULL)

def version
  Common.emit(
    contract: 1, language: 'ruby', driver: 'mongo', driver_version: Mongo::VERSION, runtime: RUBY_ENGINE,
    runtime_version: RUBY_VERSION, roles: %w[produce consume], in_flight: %w[one bounded unbounded],
    unbounded: 'program', modes: %w[tailable change-stream poll], pool: true
  )
end

def connect(options)
  uri = ENV.fetch('DYNO_URI')
  # This version supports the option only by another name.
  direct = uri.match?(/directConnection=true/i) ? { connect: :direct } : {}
  wait = uri.match?(/serverSelectionTimeoutMS/i) ? {} : { server_selection_timeout: 5 }
  # Waits for a connection have no limit: they are the producer's own queue.
  # A consumer queries for missing messages while another thread waits for the server on a separate connection.
  connections = options.key?(:mode) ? [options[:pool], 2].max : options[:pool]
  pool = { max_pool_size: connections, min_pool_size: 0, wait_queue_timeout: 86_400 }
  # A cursor that the driver itself continues on another connection may have lost a reply.
  settings = { **pool, max_read_retries: 0, app_name: 'dyno' }
  client = Mongo::Client.new(uri.gsub(/directConnection=true&?/i, ''), **settings, **direct, **wait)
  admin = client.use('admin')
  Common::PINGS.times { admin.database.command(ping: 1) }
  if options.key?(:write_concern)
    write = { w: options[:write_concern] }
    write[:j] = options[:journal] == 'true' if options[:journal]
  end
  client.use(options[:database])[options[:collection], write ? { write: write } : {}]
end

# This version reports the code only in the message, after the server's text, which may also contain numbers in parentheses.
def code(error)
  (error.code if error.respond_to?(:code)) || error.message[/.*\((\d+)\)/m, 1]&.to_i || error.message[/\AE(\d+) /, 1]&.to_i
end

# Sends messages with as many threads as inserts in flight.
class Producer
  def initialize(options, control, stamps)
    @options, @control, @stamps = options, control, stamps
    @schedule = Common.schedule(options)
    @pad = BSON::Binary.new(Common.padding(options[:size]))
    @collection = connect(options)
    @lock = Mutex.new
    @next = 0
  end

  def run
    @control.ready
    # If unbounded, due messages wait for a thread here, in front of the pool.
    wanted = @options[:in_flight] || @options[:pool]
    lanes = Array.new([wanted, @options[:messages]].min) { Thread.new { lane } }
    lanes.each { |lane| sleep(0) until lane.join(0.1) || @control.stopping }
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + Common::GRACE_S
    lanes.each { |lane| lane.join([deadline - Process.clock_gettime(Process::CLOCK_MONOTONIC), 0].max) }
    @stamps.close
  end

  private

  def lane
    closed = @schedule.nil? && @options[:in_flight]
    while (index = @lock.synchronize { (@next += 1) - 1 }) < @options[:messages]
      due_ns = @control.start_ns + (@schedule ? @schedule[index] : 0)
      return unless @control.wait_until(due_ns)

      send_ns = @control.now
      send_message(@options[:first] + index, closed ? send_ns : due_ns, send_ns)
    end
  end

  def send_message(number, intended_ns, send_ns)
    error = nil
    begin
      @collection.insert_one(
        _id: BSON::Int64.new((@options[:producer] << Common::PRODUCER_SHIFT) + number),
        p: BSON::Int32.new(@options[:producer]), n: BSON::Int64.new(number), i: BSON::Int64.new(intended_ns),
        s: BSON::Int64.new(send_ns), pad: @pad
      )
    rescue StandardError => e
      # Some errors of this driver are not a Mongo::Error.
      error = e
    end
    return unless @stamps.produced(number, intended_ns, send_ns, @control.now, error)

    Common.emit(event: 'failed', n: number, code: code(error), message: error.message)
  end
end

def main(role, arguments)
  return version if role == 'version'

  program, known = { 'produce' => [Producer, Common::PRODUCE], 'consume' => [Consumer, Common::CONSUME] }[role]
  Common.fail(2, "`#{role}` is not one of version, produce, consume") unless program
  options = Common.parse(arguments, known)
  stamps = Common::Stamps.new(options[:output])
  control = Common::Control.new(options[:clock])
  begin
    running = program.new(options, control, stamps)
  rescue Mongo::Error, SocketError, SystemCallError => e
    Common.fail(4, "cannot use the server: #{e.message}")
  end
  done = running.run
  Common.emit(done)
  exit!(control.exit_code)
rescue Common::Usage => e
  Common.fail(2, e.message)
end

main(ARGV[0], ARGV.drop(1))
